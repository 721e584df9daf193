"""Pick'Em: events, predictions and standings; leagues; scoring."""
