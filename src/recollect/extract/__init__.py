"""Phase 1: one leased job per conversation turns its entries into a summary and typed memories."""

WITHOUT_MODEL = "offline"  # how the names of strategies begin that ask no model
OFFLINE = f"{WITHOUT_MODEL}-v11"  # the one of today
