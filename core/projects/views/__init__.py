"""What screens and the command line read of labelling, reviews, meetings, reports, fusion, styles and transfer."""
