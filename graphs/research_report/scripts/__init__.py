"""The scripted models of the three roles: pure functions of their messages that follow what the prompts say."""
