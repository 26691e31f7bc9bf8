"""What people and programs touch. Decides nothing; calls the app."""
