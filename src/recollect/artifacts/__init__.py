"""Stage 3: canonical Markdown. Files are the history; everything else can be made from them again."""
