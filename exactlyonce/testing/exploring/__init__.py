"""The world of `explore`: every order of deliveries, and every fault, on a store in memory."""
