"""beartype as the tests use it: an int will do where a float is asked for, as PEP 484 says."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
