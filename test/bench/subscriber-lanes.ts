/**
 * Asks for pages of the list of a project with this many subscribers, on the database of the settings. A
 * process of its own: `subscriber-lanes.ts ROWS SECONDS` prints the median and the 99th percentile of each list in
 * microseconds, and how many subscribers were written a second.
 */
import { settings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { openStore } from "../../src/store/open"
import { fillSome } from "../../src/subscribers/postings"
import { readSearch } from "../../src/subscribers/search-words"
import { list, type SubscriberFilter } from "../../src/subscribers/subscriber-list"
import { insertAll, newRow } from "../../src/subscribers/subscribers"

const [rows = 10_000, seconds = 1] = process.argv.slice(2).map(Number)
const PROJECT = newId()
const AT_ONCE = 1000
const PAGE = { limit: 26, offset: 0 }

/** Names as they are spread in a population: few are common, many are rare. */
const SYLLABLES = [
  "an",
  "ma",
  "ri",
  "jo",
  "el",
  "ka",
  "lu",
  "so",
  "mi",
  "be",
  "ta",
  "no",
  "vi",
  "ro",
]
const pick = () => SYLLABLES[Math.floor(Math.random() ** 2 * SYLLABLES.length)] ?? "an"
const word = (least: number) =>
  Array.from({ length: least + Math.floor(Math.random() * 2) }, pick).join("")

const HOSTS = ["gmail.test", "outlook.test", "acme.test", "university.test"]

function person(at: number) {
  const [first, last] = [word(2), word(3)]
  const host = HOSTS[Math.floor(Math.random() ** 3 * HOSTS.length)]
  return newRow(PROJECT, {
    external_id: `user-${String(at).padStart(7, "0")}`,
    fields: {
      name: `${first} ${last}`,
      email: `${first}.${last}${at % 100}@${host}`,
      phone: `+4915${String(at).padStart(9, "0")}`,
      tags: at % 50 === 0 ? ["all", "rare"] : ["all"],
      status: at % 200 === 0 ? "blocked" : "active",
    },
  })
}

const store = await openStore(settings())
while (await fillSome(store)); // as a server does at its start
const begun = performance.now()
for (let at = 0; at < rows; at += AT_ONCE) {
  const size = Math.min(AT_ONCE, rows - at)
  const some = Array.from({ length: size }, (_, nth) => person(at + nth))
  await store.tx((tx) => insertAll(tx, some))
}
const written_a_second = rows / ((performance.now() - begun) / 1000)

const some = () => Math.floor(Math.random() * rows)
const asked: Record<string, () => SubscriberFilter> = {
  "all subscribers": () => ({}),
  "a status": () => ({ status: "blocked" }),
  "a tag": () => ({ tag: "rare" }),
  "a tag and a status": () => ({ tag: "rare", status: "active" }),
  "a common tag and a rare status": () => ({ tag: "all", status: "blocked" }),
  "an external id": () => ({ external_id: `user-${String(some()).padStart(7, "0")}` }),
  "a phone number": () => ({ phone: `+4915${String(some()).padStart(9, "0")}` }),
  "one letter": () => ({ words: readSearch(pick().slice(0, 1)) }),
  "three letters": () => ({ words: readSearch(`${pick()}${pick().slice(0, 1)}`) }),
  "a first name": () => ({ words: readSearch(word(2)) }),
  "four digits": () => ({ words: readSearch(String(some()).padStart(7, "0").slice(0, 4)) }),
  "a host": () => ({ words: readSearch("gmail") }),
  "a first and a last name": () => ({ words: readSearch(`${word(2)} ${word(3).slice(0, 4)}`) }),
  "a word and a rare tag": () => ({ words: readSearch(word(2)), tag: "rare" }),
  "a word and a tag": () => ({ words: readSearch(word(2)), tag: "all" }),
}

async function timesOf(filterOf: () => SubscriberFilter): Promise<number[]> {
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  while (performance.now() < end || times.length < 100) {
    const filter = filterOf()
    const from = performance.now()
    const page = await list(store.read, PROJECT, filter)
    await page.list(PAGE)
    await page.total()
    times.push((performance.now() - from) * 1000)
  }
  return times.sort((one, other) => one - other)
}

const p50: Record<string, number> = {}
const p99: Record<string, number> = {}
for (const [name, filterOf] of Object.entries(asked)) {
  await timesOf(filterOf) // warm
  const times = await timesOf(filterOf)
  p50[name] = times[Math.floor(times.length / 2)] ?? Number.NaN
  p99[name] = times[Math.floor(times.length * 0.99)] ?? Number.NaN
}
await store.close()
console.log(JSON.stringify({ p50, p99, written_a_second }))
