"""The grid of judging styles: its plan, the order of its work, what each cell came to, and the asking itself."""
