"""What is done to each image before it is handed out. Begin with `image_transform`.

`crops`, `resizing` and `flips` say what is decoded; `sequence` puts them one behind the other. May import
``loader.decoding`` and what lies below it.
"""
