"""Attacks on what is published: does a guarantee hold against someone who knows the code, and nearly all of the data?"""
