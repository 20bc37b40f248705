"""Section files define which metrics a report shows together and which it derives."""
