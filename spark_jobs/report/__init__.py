"""The audit's report: a page for people, a summary for programs, and the progress of a job."""
