"""Flags for a JVM that lives for seconds, beside others on few cores: a thorough compiler costs more than it gains."""

QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
