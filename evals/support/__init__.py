"""How well a claim is attributed to the sentence that supports it, on WiCE and SciFact."""
