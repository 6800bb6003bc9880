"""Large neighbourhoods: good choices of strategies without a proof."""
