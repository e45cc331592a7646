"""Images, masks, video, sound and medical images, as the bytes of their files.

Begin with `images`.
May import ``datasets.types.tensors`` and what lies below it.

`masks`, `recordings` and `medical` are the others. `media_bytes` takes in what users give; `image_headers` looks at
the first bytes of an image, `jpeg_headers` at those of many; `image_codecs` encodes and decodes it.
`video` reads frames: `video_sample` is a video as users see it, `video_facts` has what its row says, and `range_file`
is a file of which only ranges are read.
"""
