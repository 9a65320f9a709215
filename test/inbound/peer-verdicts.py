"""Judges mail with Debian's python3-dkim, python3-spf and python3-authheaders, from the DNS answers given.

Reads [{raw, address, helo, mail_from, zone: {"TXT name": rows | "SERVFAIL"}, own: [{result, domain}]}] as JSON
and prints one answer a mail: {dkim: [...], arc, spf, dmarc}. "own" are the results of signatures that DMARC
starts from where they differ.
"""

import base64
import json
import logging
import sys
import warnings
from email.utils import getaddresses

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

import authheaders  # noqa: E402
import authheaders.dmarc_lookup as dmarc_lookup  # noqa: E402
import dkim  # noqa: E402
import spf  # noqa: E402
from authres import DKIMAuthenticationResult, SPFAuthenticationResult  # noqa: E402
from publicsuffix2 import PublicSuffixList  # noqa: E402

zone = {}

# The list is read once, not at each question.
suffixes = PublicSuffixList(open(dmarc_lookup.get_suffix_list_file_name()))
dmarc_lookup.get_org_domain = suffixes.get_public_suffix
authheaders.get_org_domain = suffixes.get_public_suffix


class Unanswered(Exception):
    """DNS did not answer."""


def rows(name, kind):
    found = zone.get(("%s %s" % (kind, name.rstrip("."))).lower(), [])
    if isinstance(found, str):
        raise Unanswered(name)
    return found


def text(row):
    return "".join(row["data"])


def spf_lookup(name, qtype, strict=True, timeout=20):
    try:
        found = rows(name, qtype)
    except Unanswered as error:
        raise spf.TempError("DNS %s" % error)
    if qtype in ("A", "AAAA"):
        return [((name, qtype), row["address"]) for row in found]
    if qtype == "MX":
        return [((name, qtype), (row["priority"], row["exchange"])) for row in found]
    if qtype == "PTR":
        return [((name, qtype), row["domain"]) for row in found]
    if qtype == "TXT":
        return [((name, qtype), [part.encode() for part in row["data"]]) for row in found]
    return []


spf.DNSLookup = spf_lookup


class KeyRecords:
    """The look-up of python3-dkim, which forgets that DNS did not answer."""

    def __init__(self):
        self.unanswered = False

    def __call__(self, name, timeout=5):
        try:
            found = rows(name.decode(), "TXT")
        except Unanswered as error:
            self.unanswered = True
            raise dkim.DnsTimeoutError(str(error))
        return text(found[0]).encode() if found else None


def signatures(raw):
    words = []
    for index in range(sum(1 for name, _ in dkim.DKIM(raw).headers if name.lower() == b"dkim-signature")):
        verifier, keys = dkim.DKIM(raw), KeyRecords()
        try:
            word = "pass" if verifier.verify(idx=index, dnsfunc=keys) else "fail"
            why = ""
        except Exception as error:
            word, why = "fail", repr(error)
        if keys.unanswered and word == "fail":
            word = "temperror"
        domain = verifier.signature_fields.get(b"d", b"").decode("latin1")
        words.append({"result": word, "domain": domain, "why": why})
    return words


def chain(raw):
    keys = KeyRecords()
    try:
        result, _, why = dkim.ARC(raw).verify(dnsfunc=keys)
    except Exception as error:
        result, why = b"fail", repr(error)
    word = result.decode() if result else "fail"
    return {"result": "temperror" if keys.unanswered and word == "fail" else word, "why": why}


def policy_record(name):
    found = [text(row) for row in rows(name, "TXT")]
    records = [one for one in found if one.startswith("v=DMARC1")]
    return records[0] if len(records) == 1 else None


def dmarc_of(domain, spf_word, identity, helo, signed):
    words = []
    for one in signed or [None]:
        by_spf = SPFAuthenticationResult(result=spf_word, smtp_mailfrom=identity, smtp_helo=helo)
        by_dkim = one and DKIMAuthenticationResult(result=one["result"], header_d=one["domain"])
        words.append(authheaders.dmarc_per_from(domain, by_spf, by_dkim, policy_record)[0])
    return "pass" if "pass" in words else words[0]


def dmarc(raw, spf_word, mail_from, helo, signed):
    """The worst result of all authors. Its own loop over them breaks what it is given."""
    fields, _ = dkim.rfc822_parse(raw)
    texts = [value.decode(errors="ignore").strip() for name, value in fields if name.lower() == b"from"]
    authors = [authheaders.get_domain_part(address) for _, address in getaddresses(texts)]
    identity = mail_from or "postmaster@" + helo
    try:
        words = [dmarc_of(domain, spf_word, identity, helo, signed) for domain in sorted(set(authors))]
    except Unanswered:
        return "temperror"
    except Exception as error:
        return repr(error)
    return next((word for word in ("fail", "none", "pass") if word in words), "none")


def judged(mail):
    global zone
    zone = {name.lower(): found for name, found in mail["zone"].items()}
    raw = base64.b64decode(mail["raw"])
    word, why = spf.check2(i=mail["address"], s=mail["mail_from"], h=mail["helo"], receiver="mx.here.test")
    try:
        signed = signatures(raw)
    except Exception as error:
        signed = [{"result": "unreadable", "domain": "", "why": repr(error)}]
    same = [one["result"] for one in signed] == [one["result"] for one in mail["own"]]
    policy = dmarc(raw, word, mail["mail_from"], mail["helo"], signed if same else mail["own"])
    return {"dkim": signed, "arc": chain(raw), "spf": {"result": word, "why": why}, "dmarc": policy}


json.dump([judged(mail) for mail in json.load(sys.stdin)], sys.stdout)
