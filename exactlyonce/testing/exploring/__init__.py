"""The world in which `explore` runs an application: every order of deliveries, and every fault, on a store in memory."""
