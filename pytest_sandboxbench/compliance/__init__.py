"""The suite that a provider must pass: each check is one promise of the protocol, tried on real sandboxes."""
