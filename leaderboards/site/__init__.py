"""The leaderboard as a static site: records in, a folder of pages out."""
