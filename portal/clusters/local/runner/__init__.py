"""The kubelet of one pod: a small program that starts the command, keeps its log and notes its end.

It is started with `python -I -S`, so it may use the standard library only, and few modules of it: it has to be up
within some tens of milliseconds, and one runs for every pod (pathlib alone would cost 15 ms). It outlives the portal.
"""
