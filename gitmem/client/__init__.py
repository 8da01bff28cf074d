"""A store on a server, used as one on this machine is."""
