"""Pick'em: one function per field.

rules ─────── what a pick is worth, which values a card may have: pure
shown ─────── records as fields show them: a match on its card, a prediction with its event, a standing with its rank
kept ──────── what the process keeps: cards by version, picks per team, histograms; the locks under way
events ────── events and cards
predictions ─ submissions, and who may see what of them
standings ─── seasons and ranks
scoring ───── from results to points
"""
