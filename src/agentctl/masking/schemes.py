"""Numbers of national documents: how they are written, what proves them, and where a birth date stands in them.

Source: python-stdnum 2.2, one module a number; the numbers of two countries that it does not know are below.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One kind of number.

    Attributes:
        name: Country and number, `us.ssn`: also its module in stdnum where `check` is None.
        shape: What the number looks like without spaces, dots and dashes, in capitals.
        written: How it is written so that it cannot well be anything else; None where only a word beside it tells.
        words: What stands beside it, or names its field.
        dated: Where a birth date stands: first position, and order of its digits.
        kept: Positions that are not drawn: codes that come from a list.
        check: Says whether a compact number is right; None for that of stdnum.
    """

    name: str
    shape: re.Pattern[str]
    written: re.Pattern[str] | None
    words: re.Pattern[str]
    dated: tuple[int, str] | None = None
    kept: tuple[int, ...] = ()
    check: Check | None = None

    def is_right(self, compact: str) -> bool:
        """Says whether a number without spaces, dots and dashes, in capitals, is one of this kind."""
        if self.shape.fullmatch(compact) is None:
            return False
        return (self.check or _stdnum_check(self.name))(compact)


@cache
def _stdnum_check(name: str) -> Check:
    check: Check = import_module(f"stdnum.{name}").is_valid
    return check


def _is_nino(number: str) -> bool:
    """Source: gov.uk, NIM39110 (prefixes that are not given out)."""
    return number[:2] not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


def _is_nric(number: str) -> bool:
    """Source: Singapore's NRIC and FIN, check letter by weights 2 7 6 5 4 3 2."""
    total = sum(weight * int(digit) for weight, digit in zip((2, 7, 6, 5, 4, 3, 2), number[1:8], strict=True))
    total += 4 if number[0] in "TG" else 0
    return number[8] == ("JZIHGFEDCBA" if number[0] in "ST" else "XWUTRQPNMLK")[total % 11]


def _scheme(
    name: str,
    shape: str,
    written: str | None,
    words: str,
    *,
    dated: tuple[int, str] | None = None,
    kept: tuple[int, ...] = (),
    check: Check | None = None,
) -> Scheme:
    return Scheme(
        name,
        re.compile(shape),
        re.compile(written) if written else None,
        re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE),
        dated,
        kept,
        check,
    )


SCHEMES: Final = (
    _scheme("us.ssn", r"\d{9}", r"\d{3}-\d{2}-\d{4}", r"ssn|social security(?: (?:number|no|nr))?"),
    _scheme("us.itin", r"9\d{8}", r"9\d{2}-\d{2}-\d{4}", r"itin|taxpayer id\w*"),
    _scheme("in_.aadhaar", r"\d{12}", r"\d{4}([ -])\d{4}\1\d{4}", r"aadh?aar|aadhar|uidai|uid|आधार"),
    _scheme("in_.pan", r"[A-Z]{5}\d{4}[A-Z]", r"[A-Z]{3}P[A-Z]\d{4}[A-Z]", r"pan|permanent account"),
    _scheme("in_.gstin", r"\d{2}[A-Z]{5}\d{4}[A-Z][0-9A-Z]Z[0-9A-Z]", r"[0-9A-Z]{15}", r"gstin?", kept=(0, 1, 5, 13)),
    _scheme("in_.epic", r"[A-Z]{3}\d{7}", None, r"epic|voter(?: id\w*)?", kept=(0, 1, 2)),
    _scheme(
        "gb.nino",
        r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\d{6}[A-D]",
        r"[A-Z]{2}([ -]?)\d{2}\1\d{2}\1\d{2}\1[A-D]",
        r"nino|national insurance",
        check=_is_nino,
    ),
    _scheme("gb.nhs", r"\d{10}", None, r"nhs(?: (?:number|no))?"),
    _scheme("ca.sin", r"\d{9}", None, r"sin|nas|social insurance"),
    _scheme("br.cpf", r"\d{11}", r"\d{3}\.\d{3}\.\d{3}-\d{2}", r"cpf"),
    _scheme("es.dni", r"\d{8}[A-Z]", r"\d{8}[ -]?[A-Z]", r"dni|nif"),
    _scheme("es.nie", r"[XYZ]\d{7}[A-Z]", r"[XYZ]-?\d{7}-?[A-Z]", r"nie"),
    _scheme(
        "fr.nir",
        r"[12]\d{14}",
        r"[12] ?\d{2} ?\d{2} ?\d{2} ?\d{3} ?\d{3} ?\d{2}",
        r"nir|sécurité sociale|securite sociale",
        kept=(0,),
    ),
    _scheme(
        "it.codicefiscale",
        r"[A-Z]{6}[0-9A-Z]{2}[A-Z][0-9A-Z]{2}[A-Z][0-9A-Z]{3}[A-Z]",
        r"[0-9A-Z]{16}",
        "codice fiscale|cf",
    ),
    _scheme("de.idnr", r"\d{11}", None, r"idnr|steuer-?(?:id\w*|nummer)|tin|tax id"),
    _scheme("nl.bsn", r"\d{9}", None, r"bsn|burgerservicenummer|sofi-?nummer"),
    _scheme(
        "se.personnummer",
        r"(?:\d{2})?\d{10}",
        r"(?:\d{2})?\d{6}[-+]\d{4}",
        r"personnummer|personal number",
        dated=(-10, "ymd"),
    ),
    _scheme("pl.pesel", r"\d{11}", None, r"pesel"),
    _scheme(
        "fi.hetu", r"\d{6}[-+A-FU-Y]?\d{3}[0-9A-Y]", r"\d{6}[-+A]\d{3}[0-9A-Y]", r"hetu|henkilötunnus", dated=(0, "dmy")
    ),
    _scheme("dk.cpr", r"\d{10}", None, r"cpr|cpr-nummer|personnummer", dated=(0, "dmy")),
    _scheme(
        "be.nn",
        r"\d{11}",
        r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}",
        r"rijksregister\w*|registre national|nn",
        dated=(0, "ymd"),
    ),
    _scheme("ch.ssn", r"756\d{10}", r"756\.\d{4}\.\d{4}\.\d{2}", r"ahv(?:-nummer)?|avs", kept=(0, 1, 2)),
    _scheme(
        "cn.ric", r"\d{17}[0-9X]", r"\d{17}[0-9X]", r"身份证|resident id\w*", dated=(6, "Ymd"), kept=(0, 1, 2, 3, 4, 5)
    ),
    _scheme("kr.rrn", r"\d{13}", r"\d{6}-[1-8]\d{6}", r"rrn|주민등록번호", dated=(0, "ymd"), kept=(6,)),
    _scheme(
        "mx.curp",
        r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d",
        r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d",
        r"curp",
        dated=(4, "ymd"),
        kept=(10, 11, 12, 16),
    ),
    _scheme("mx.rfc", r"[A-Z&Ñ]{4}\d{6}[0-9A-Z]{3}", r"[A-Z&Ñ]{4}-?\d{6}-?[0-9A-Z]{3}", r"rfc", dated=(4, "ymd")),
    _scheme("sg.nric", r"[STFG]\d{7}[A-Z]", r"[STFG]\d{7}[A-Z]", r"nric|fin", kept=(0,), check=_is_nric),
    _scheme("za.idnr", r"\d{13}", None, r"(?:sa |south african )?id(?: (?:number|no))?", dated=(0, "ymd")),
    _scheme("tr.tckimlik", r"\d{11}", None, r"tckn|t\.?c\.? ?kimlik(?: no)?|kimlik"),
    _scheme("cl.rut", r"\d{7,8}[0-9K]", r"\d{1,2}\.\d{3}\.\d{3}-[0-9Kk]", r"rut"),
    _scheme("ar.cuit", r"\d{11}", r"\d{2}-\d{8}-\d", r"cuit|cuil", kept=(0, 1)),
    _scheme("au.tfn", r"\d{8,9}", None, r"tfn|tax file"),
    _scheme("ie.pps", r"\d{7}[A-W][ABHWTX]?", r"\d{7}[A-W][ABHWTX]?", r"pps(?:n| number)?"),
    _scheme("pt.nif", r"[1-9]\d{8}", None, r"nif|contribuinte"),
    _scheme("ro.cnp", r"\d{13}", None, r"cnp", dated=(1, "ymd"), kept=(0, 7, 8)),
    _scheme("no.fodselsnummer", r"\d{11}", None, r"fødselsnummer|fodselsnummer|personnummer", dated=(0, "dmy")),
)
"""In the order in which a number is taken for one of them where it could be several."""


_ANY_SHAPE = re.compile("|".join(f"(?:{scheme.shape.pattern})" for scheme in SCHEMES))


def could_be_one(compact: str) -> bool:
    """Says whether a compact number has the shape of any kind."""
    return _ANY_SHAPE.fullmatch(compact) is not None


def scheme_of(compact: str) -> Scheme | None:
    """Returns the first kind that a compact number is right as, or None."""
    return next((scheme for scheme in SCHEMES if scheme.is_right(compact)), None)
