"""The page: a process of its own, where a person sees, searches, corrects and erases what agents remember."""
