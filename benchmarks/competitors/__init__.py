"""What a user would pick instead, as strategies: on the same client, store adapter and driver as the library's own."""
