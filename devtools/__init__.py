"""Development tools of this repository; never shipped, never imported by the library."""
