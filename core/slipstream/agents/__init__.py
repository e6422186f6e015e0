"""Sets up coding agents for this server: shows, writes, tests and undoes their configuration."""
