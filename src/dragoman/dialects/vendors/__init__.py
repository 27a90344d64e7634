"""The dialects of four existing systems: iac-code, elephant.ai, Agentao and simse."""
