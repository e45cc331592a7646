"""Images with what is marked in them.

Begin with `coco` or `yolo`.
May import the other modules of ``datasets.sources``, and what they may.

`coco_survey` reads what COCO says of all images, `yolo_layout` finds images and labels, `json_stream` parses large
JSON, `region_masks` makes masks of polygons and run lengths.
"""
