import { generateKeyPairSync, type KeyObject } from "node:crypto"
import type { MailArrival } from "../../src/inbound/verdicts"
import {
  type ArcFields,
  arcSet,
  bytesOf,
  type DraftMail,
  dkimField,
  type SigningKey,
  simpleBody,
} from "./mail-signing"
import { CLIENT, SPF_SAMPLES, spfZone, txtRows, type ZoneRows } from "./sample-spf"

/** A mail with all that DNS says about it, and the names of what was done to it. */
export interface SampleMail {
  name: string
  raw: Buffer
  arrival: MailArrival
  zone: ZoneRows
  traits: string[]
}

interface Random {
  below(limit: number): number
  pick<T>(list: readonly T[]): T
  chance(percent: number): boolean
}

/** mulberry32: the same numbers for the same seed. */
function randomFrom(seed: number): Random {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    pick: (list) => list[below(list.length)] as (typeof list)[number],
    chance: (percent) => below(100) < percent,
  }
}

const pair = (bits: number) => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: bits })
  const der = publicKey.export({ type: "spki", format: "der" }).toString("base64")
  return { key: privateKey, published: `v=DKIM1; k=rsa; p=${der}` }
}

function edwards() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const bare = publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("base64")
  return { key: privateKey, published: `v=DKIM1; k=ed25519; p=${bare}` }
}

interface SampleKey {
  key: KeyObject
  published: string
}

const keys = {
  rsa: pair(2048),
  other: pair(2048),
  small: pair(1024),
  weak: pair(768),
  edwards: edwards(),
} satisfies Record<string, SampleKey>

const DAY = 86_400

/** Seconds since 1970: the tests run now, and so do the peers. */
const today = () => Math.floor(Date.now() / 1000)

interface SampleContext {
  random: Random
  mail: DraftMail
  zone: ZoneRows
  traits: string[]
  /** The domain of From, and the one it was registered as. */
  author: string
  base: string
}

/** What a key record says instead of the key. Returns undefined where the usual record stays. */
const KEY_RECORDS: Record<string, (published: string) => ZoneRows[string]> = {
  "a key that is not there": () => [],
  "a revoked key": () => txtRows("v=DKIM1; k=rsa; p="),
  "the key of another": () => txtRows(keys.other.published),
  "a broken key": () => txtRows("v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3"),
  "a key record without a version": (text) => txtRows(text.replace("v=DKIM1; ", "")),
  "a key record of another version": (text) => txtRows(text.replace("DKIM1", "DKIM2")),
  "a key for SHA-1": (text) => txtRows(text.replace("; p=", "; h=sha1; p=")),
  "a key for SHA-256": (text) => txtRows(text.replace("; p=", "; h=sha256; p=")),
  "a key for another service": (text) => txtRows(text.replace("; p=", "; s=other; p=")),
  "a key for mail": (text) => txtRows(text.replace("; p=", "; s=email; p=")),
  "a key in test mode": (text) => txtRows(text.replace("; p=", "; t=y; p=")),
  "a key of an unknown type": (text) => txtRows(text.replace(/k=\w+/, "k=dsa")),
  "a key with notes": (text) => txtRows(`${text}; n=made=for=tests`),
  "a key that DNS does not tell": () => "SERVFAIL",
}

const FIELDS = ["From", "To", "Subject", "Date", "Message-ID"]

const KINDS = [
  "rsa",
  "rsa",
  "rsa",
  "rsa",
  "rsa",
  "edwards",
  "edwards",
  "small",
  "weak",
  "sha1",
] as const

/** Adds one DKIM signature to the mail, with some trait. */
function addSignature(context: SampleContext, selector: string) {
  const { random, mail, zone, traits, author, base } = context
  const domain = random.pick([author, author, base, base, `mail.${base}`, "provider.com"])
  const kind = random.pick(KINDS)
  const sample: SampleKey = kind === "sha1" ? keys.rsa : keys[kind]
  const algorithm =
    kind === "edwards" ? "ed25519-sha256" : kind === "sha1" ? "rsa-sha1" : "rsa-sha256"
  traits.push(`${selector}: ${kind}`)
  const signing: SigningKey = { algorithm, key: sample.key }

  zone[`TXT ${selector}._domainkey.${domain}`] = txtRows(sample.published)
  if (random.chance(30)) {
    const name = random.pick(Object.keys(KEY_RECORDS))
    traits.push(`${selector}: ${name}`)
    zone[`TXT ${selector}._domainkey.${domain}`] = KEY_RECORDS[name]?.(sample.published) ?? []
  }

  const tags = {
    domain,
    selector,
    canon: random.pick(["relaxed/relaxed", "relaxed/simple", "simple/simple", "simple/relaxed"]),
    h: FIELDS,
    more: [`t=${today() - 600}`],
  }
  const changed = random.chance(35) ? tagsWith(context, selector, tags) : tags
  traits.push(`${selector}: ${changed.canon}`)
  mail.fields.unshift(dkimField(mail, changed, signing))
}

type Tags = Parameters<typeof dkimField>[1] & { more: string[] }

function tagsWith({ random, traits, mail }: SampleContext, selector: string, tags: Tags): Tags {
  const at = today()
  const variants: Record<string, () => Tags> = {
    expired: () => ({ ...tags, more: [`t=${at - 20 * DAY}`, `x=${at - 10 * DAY}`] }),
    "not yet expired": () => ({ ...tags, more: [`t=${at - DAY}`, `x=${at + DAY}`] }),
    "expired a minute ago": () => ({ ...tags, more: [`t=${at - DAY}`, `x=${at - 60}`] }),
    "expires before it was made": () => ({ ...tags, more: [`t=${at - 60}`, `x=${at - 90}`] }),
    "made in the future": () => ({ ...tags, more: [`t=${at + 30 * DAY}`] }),
    "identity below": () => ({ ...tags, more: [`i=ann@lists.${tags.domain}`] }),
    "identity elsewhere": () => ({ ...tags, more: ["i=ann@elsewhere.test"] }),
    "From not covered": () => ({ ...tags, h: ["To", "Subject", "Date"] }),
    "From covered twice": () => ({
      ...tags,
      h: ["From", "From", "Subject", "Subject", "Reply-To"],
    }),
    "a field that is not there": () => ({ ...tags, h: [...FIELDS, "Sender", "X-Nothing"] }),
    "length of the whole body": () => ({
      ...tags,
      canon: "simple/simple",
      length: simpleBody(mail.body).length,
    }),
    "length of a part of the body": () => ({ ...tags, length: 10 }),
    "another query": () => ({ ...tags, more: ["q=dns/other"] }),
    "an unknown tag": () => ({ ...tags, more: ["z=From:x|To:y", "future=1"] }),
    "tag twice": () => ({ ...tags, more: [`t=${at - 600}`, `t=${at - 600}`] }),
  }
  const name = random.pick(Object.keys(variants))
  traits.push(`${selector}: ${name}`)
  return variants[name]?.() ?? tags
}

/** What happens to a mail on its way, after it was signed. */
const CHANGES: Record<string, (mail: DraftMail, random: Random) => void> = {
  "body changed": (mail) => {
    mail.body = mail.body.replace("pay 10", "pay 99")
  },
  "body longer": (mail) => {
    mail.body += "-- \r\nA list added this.\r\n"
  },
  "empty lines at the end": (mail) => {
    mail.body += "\r\n\r\n"
  },
  "spaces at line ends": (mail) => {
    mail.body = mail.body.replaceAll("\r\n", " \t\r\n")
  },
  "spaces within lines": (mail) => {
    mail.body = mail.body.replaceAll(" ", "  ")
  },
  "subject changed": (mail) => {
    mail.fields = mail.fields.map((field) => field.replace("Subject: ", "Subject: [list] "))
  },
  "subject folded": (mail) => {
    mail.fields = mail.fields.map((field) =>
      field.replace("Subject: Hello ", "Subject:  Hello\r\n\t"),
    )
  },
  "names of fields in capitals": (mail) => {
    mail.fields = mail.fields.map((field) =>
      field.replace(/^Subject|^To/, (name) => name.toUpperCase()),
    )
  },
  "fields added": (mail) => {
    mail.fields.unshift(
      "Received: from a.test by b.test; Mon, 1 Jan 2024 00:00:00 +0000",
      "X-List: yes",
    )
  },
  "fields in another order": (mail, random) => {
    const at = mail.fields.findIndex((field) => field.startsWith("To:"))
    const [to = ""] = mail.fields.splice(at, 1)
    mail.fields.splice(random.below(mail.fields.length), 0, to)
  },
  "signature damaged": (mail) => {
    const at = mail.fields.findIndex((field) => field.startsWith("DKIM-Signature"))
    const field = mail.fields[at]
    if (field)
      mail.fields[at] = field.replace(
        /b=(.)([^=;]*=*)$/,
        (_, one, rest) => `b=${one === "A" ? "B" : "A"}${rest}`,
      )
  },
  "another From in front": (mail) => {
    mail.fields.unshift("From: ceo@provider.com")
  },
  "another From behind": (mail) => {
    mail.fields.push("From: ceo@provider.com")
  },
  "another subject in front": (mail) => {
    mail.fields.unshift("Subject: You won")
  },
}

/** An ARC chain, whole or broken in one place. */
function addChain(context: SampleContext) {
  const { random, mail, zone, traits } = context
  const hops = 1 + random.below(3)
  const sets: ArcFields[] = []
  traits.push(`arc: ${hops} hops`)
  for (let instance = 1; instance <= hops; instance++) {
    const domain = `hop${instance}.lists.net`
    zone[`TXT arc._domainkey.${domain}`] = txtRows(keys.rsa.published)
    const set = arcSet(
      mail,
      sets,
      {
        instance,
        domain,
        selector: "arc",
        cv: instance === 1 ? "none" : "pass",
        canon: random.pick(["relaxed/relaxed", "relaxed/simple"]),
        h: ["From", "To", "Subject", "DKIM-Signature"],
        results: `mx.${domain}; spf=pass smtp.mailfrom=a.test;\r\n dkim=pass header.d=a.test; arc=none`,
      },
      { algorithm: "rsa-sha256", key: keys.rsa.key },
    )
    sets.push(set)
    mail.fields.unshift(set.as, set.ams, set.aar)
    if (instance < hops && random.chance(25)) {
      traits.push("arc: body changed between hops")
      mail.body += "A list added this.\r\n"
    }
  }
  if (random.chance(45)) breakChain(context, hops)
}

function breakChain({ random, mail, zone, traits }: SampleContext, hops: number) {
  const instance = 1 + random.below(hops)
  const replace = (start: string, change: (field: string) => string) => {
    const at = mail.fields.findIndex((field) => field.startsWith(`${start}: i=${instance};`))
    mail.fields[at] = change(mail.fields[at] ?? "")
  }
  const record = `TXT arc._domainkey.hop${instance}.lists.net`
  const ways: Record<string, () => void> = {
    "results changed": () =>
      replace("ARC-Authentication-Results", (field) => field.replace("pass", "fail")),
    "seal damaged": () =>
      replace("ARC-Seal", (field) =>
        field.replace(/b=(.)/, (_, one) => `b=${one === "A" ? "B" : "A"}`),
      ),
    "message signature damaged": () =>
      replace("ARC-Message-Signature", (field) =>
        field.replace(/\bb=(.)/, (_, one) => `b=${one === "A" ? "B" : "A"}`),
      ),
    "results missing": () => replace("ARC-Authentication-Results", () => "X-Gone: 1"),
    "seal missing": () => replace("ARC-Seal", () => "X-Gone: 1"),
    "seal says none": () =>
      replace("ARC-Seal", (field) =>
        field.replace(/cv=\w+/, instance === 1 ? "cv=pass" : "cv=none"),
      ),
    "seal says fail": () => replace("ARC-Seal", (field) => field.replace(/cv=\w+/, "cv=fail")),
    "seal twice": () => replace("ARC-Seal", (field) => `${field}\r\n${field}`),
    "key missing": () => {
      zone[record] = []
    },
    "key of another": () => {
      zone[record] = txtRows(keys.other.published)
    },
    "no answer for the key": () => {
      zone[record] = "SERVFAIL"
    },
    "body changed at the end": () => {
      mail.body += "Added.\r\n"
    },
    "subject changed at the end": () => {
      mail.fields = mail.fields.map((field) => field.replace("Subject: ", "Subject: [x] "))
    },
  }
  const name = random.pick(Object.keys(ways))
  traits.push(`arc: ${name} at ${instance}`)
  ways[name]?.()
}

/** Records at `_dmarc.` of the author's domain or of the registered one. */
const POLICIES: Record<string, ZoneRows[string]> = {
  none: txtRows("v=DMARC1; p=none; rua=mailto:r@example.com"),
  quarantine: txtRows("v=DMARC1; p=quarantine"),
  reject: txtRows("v=DMARC1; p=reject"),
  "reject, subdomains none": txtRows("v=DMARC1; p=reject; sp=none"),
  "strict DKIM": txtRows("v=DMARC1; p=reject; adkim=s"),
  "strict SPF": txtRows("v=DMARC1; p=reject; aspf=s"),
  "strict both": txtRows("v=DMARC1;p=reject;adkim=s;aspf=s;"),
  "for a part": txtRows("v=DMARC1; p=reject; pct=30"),
  "spaces around": txtRows("v=DMARC1 ; p = quarantine ; adkim = r"),
  "two records": [...(txtRows("v=DMARC1; p=none") as []), ...(txtRows("v=DMARC1; p=reject") as [])],
  "another text": txtRows("something else"),
  "no policy": txtRows("v=DMARC1; rua=mailto:r@example.com"),
  "unknown policy": txtRows("v=DMARC1; p=discard"),
  "no answer": "SERVFAIL",
}

const BODY =
  "Dear Bob,\r\n\r\nplease pay 10 euros.  Do it soon,\tif you can.\r\n\r\nGr\xfc\xdfe \r\nAnn\r\n"

function sampleMail(seed: number, number: number): SampleMail {
  const random = randomFrom(seed * 100_003 + number)
  const base = `example.${random.pick(["com", "com", "org", "co.uk", "github.io"])}`
  const author = random.pick([base, base, `news.${base}`, `a.b.${base}`])
  const mail: DraftMail = {
    fields: [
      `From: ${random.pick(["Ann <ann@%>", '"Ann, of sales" <ann@%>', "ann@%", "Ann (a<b@x.test>) <ann@%>", "Ann <ann@%>, bob@%"]).replaceAll("%", author)}`,
      "To: bob@b.test",
      "Subject: Hello  and goodbye",
      "Date: Mon, 01 Jan 2024 10:00:00 +0000",
      `Message-ID: <${number}@${base}>`,
    ],
    body: random.pick([BODY, BODY, BODY, "", "\r\n\r\n", "one line without an end"]),
  }
  const context: SampleContext = { random, mail, zone: {}, traits: [], author, base }
  const { zone, traits } = context

  const signatures = random.pick([0, 1, 1, 1, 2, 3])
  for (let at = 0; at < signatures; at++) addSignature(context, `s${at}`)
  if (random.chance(30)) {
    const change = random.pick(Object.keys(CHANGES))
    traits.push(change)
    CHANGES[change]?.(mail, random)
  }
  if (random.chance(45)) addChain(context)

  const policy = random.pick(Object.keys(POLICIES))
  const place = random.pick([author, base, base])
  if (random.chance(85)) {
    traits.push(`policy: ${policy} at ${place === author ? "the author" : "the base"}`)
    zone[`TXT _dmarc.${place}`] = POLICIES[policy] ?? []
  }

  const names = Object.keys(SPF_SAMPLES)
  const spf = names[number % names.length] ?? ""
  const sample = SPF_SAMPLES[spf]
  const sender = random.pick([author, base, `bounce.${base}`, "provider.com"])
  const is_null = random.chance(10)
  traits.push(`spf: ${spf}${is_null ? " of HELO" : ""}`)
  const helo = is_null ? `mx.${sender}` : "mx.client.test"
  if (sample) Object.assign(zone, spfZone(sample, is_null ? helo : sender, "other.net"))
  const arrival = {
    address: sample?.address ?? CLIENT,
    helo,
    mail_from: is_null ? "" : `ann@${sender}`,
  }
  return { name: `mail ${number} of seed ${seed}`, raw: bytesOf(mail), arrival, zone, traits }
}

/** The same mails for the same seed, apart from keys and times. */
export const sampleMails = (seed: number, count: number): SampleMail[] =>
  Array.from({ length: count }, (_, number) => sampleMail(seed, number))
