"""Front end of pandas: the accessor ``df.dprisk``, declarations in ``attrs``, requests from what users write."""
