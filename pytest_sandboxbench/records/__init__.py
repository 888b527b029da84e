"""Raw samples on disk: one folder a run, one JSON object a line, from which every number can be made again."""
