"""What each study contributes to reports and to the command line: tables, figures, pages, commands."""
