"""Language models behind an OpenAI-compatible address: address, prompt and client."""
