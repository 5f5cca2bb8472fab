"""Jobs as processes of this machine, under the same queue rules."""
