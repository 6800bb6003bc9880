"""Questions of joint design: sections, reading, the space of designs and its boxes."""
