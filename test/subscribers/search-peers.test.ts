import { expect, test } from "bun:test"
import type { ListWindow } from "../../src/store/rows"
import { findForUpdate, type SubscriberRow } from "../../src/subscribers/find-subscriber"
import { areComplete } from "../../src/subscribers/postings"
import { readSearch } from "../../src/subscribers/search-words"
import { list, type SubscriberFilter } from "../../src/subscribers/subscriber-list"
import { change, insertAll, newRow, removeRows } from "../../src/subscribers/subscribers"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"

const service = await sharedService()
const { store } = service

/** The same numbers in each run. */
function seeded(seed: number) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const random = seeded(23)
const below = (most: number) => Math.floor(random() * most)
const oneOf = <Value>(list: readonly Value[]): Value => list[below(list.length)] as Value

/** First ones are picked more often, as names of people are. */
const often = <Value>(list: readonly Value[]): Value =>
  list[Math.floor(random() ** 3 * list.length)] as Value

const NAMES = [
  ...["Anna", "Ann", "Annabel", "Maria", "Marianne", "Mario", "Johanna", "José", "Jose", "Joël"],
  ...["Álvaro", "Zoë", "Straße", "Strasse", "Ångström", "O'Neil", "ﬁne", "Ｆｕｌｌ", "x"],
  ...["王小明", "王", "小明", "Παπαδόπουλος", "Παπάς", "Наталья", "Натали", "نجيب", "محفوظ"],
  ...["Konstantinopolitanos", "Konstantinopel", "Konstantin", "𝔘nicode", "İstanbul", "𐐀𐐁𐐂𐐃𐐄𐐅𐐆𐐇"],
]
const HOSTS = ["mail.example.test", "example.test", "post.test"]
const TAGS = ["all", "often", "rare", "Ann"]

function fields(): Partial<SubscriberRow> {
  const [first, last] = [often(NAMES), oneOf(NAMES)]
  return {
    name: below(10) === 0 ? null : `${first} ${last}`,
    email: below(5) === 0 ? null : `${last}.${below(50)}@${oneOf(HOSTS)}`,
    tags: TAGS.filter((_, at) => at === 0 || below(at * at * 3) === 0),
  }
}

/** Its own way to find words, one character after the other. */
function wordsOf(text: string): string[] {
  const words: string[] = []
  let [word, kind] = ["", ""]
  for (const character of text.normalize("NFKC").toLowerCase().normalize("NFKC")) {
    const is_digit = /\p{N}/u.test(character)
    const found = is_digit ? "digit" : /[\p{L}\p{M}]/u.test(character) ? "letter" : ""
    if (found !== kind && word !== "") words.push(word)
    word = found === "" ? "" : (found === kind ? word : "") + character.replace("ς", "σ")
    kind = found
  }
  return word === "" ? words : [...words, word]
}

/** Whether each word of the search begins a word of the subscriber, which has the tag. */
function isFound(row: SubscriberRow, search: string, tag: string | undefined): boolean {
  const own = [row.external_id, row.name, row.email].flatMap((text) => wordsOf(text ?? ""))
  const words = wordsOf(search)
  const has = words.every((word) => own.some((other) => other.startsWith(word)))
  return has && (tag === undefined || row.tags.includes(tag))
}

/** One to three beginnings of words, which may be of one subscriber. */
function aSearch(people: SubscriberRow[]): string {
  const { external_id, name, email } = oneOf(people)
  const known = [external_id, name, email].flatMap((text) => wordsOf(text ?? ""))
  const words = Array.from({ length: 1 + below(3) }, () => {
    const word = [...oneOf(below(4) === 0 ? NAMES.flatMap(wordsOf) : known)]
    return word.slice(0, 1 + below(word.length)).join("")
  })
  return words.join(oneOf([" ", ", ", "-"]))
}

const FIRST_PAGE: ListWindow = { limit: 25, offset: 0, after: undefined, before: undefined }

async function requireSame(project_id: string, people: Map<string, SubscriberRow>) {
  const newest = [...people.values()].sort((one, other) => (one.id < other.id ? 1 : -1))
  for (let round = 0; round < sizes.searches; round++) {
    const search = aSearch(newest)
    const tag = below(2) === 0 ? oneOf(TAGS) : undefined
    const filter: SubscriberFilter = { words: readSearch(search), tag }
    const about = JSON.stringify({ search, tag })
    const wanted = newest.filter((row) => isFound(row, search, tag)).map(({ id }) => id)
    const idsIn = async (window: Partial<ListWindow>) => {
      const found = await list(store.read, project_id, filter)
      return (await found.list({ ...FIRST_PAGE, ...window })).rows.map(({ id }) => id)
    }
    const found = await list(store.read, project_id, filter)
    const first = (await found.list(FIRST_PAGE)).rows.map(({ id }) => id)
    expect([about, first]).toEqual([about, wanted.slice(0, 25)])
    const is_alone = filter.words?.length === 1 && tag === undefined
    const most = is_alone ? 1000 : 100
    expect([about, await found.total()]).toEqual([
      about,
      wanted.length > most ? null : wanted.length,
    ])
    const at = below(wanted.length + 1)
    const limit = 1 + below(40)
    expect([about, await idsIn({ offset: at, limit })]).toEqual([
      about,
      wanted.slice(at, at + limit),
    ])
    const edge = oneOf(newest).id // which need not be found itself
    expect([about, await idsIn({ after: edge, limit })]).toEqual([
      about,
      wanted.filter((id) => id < edge).slice(0, limit),
    ])
    expect([about, await idsIn({ before: edge, limit })]).toEqual([
      about,
      wanted
        .filter((id) => id > edge)
        .slice(-limit)
        .reverse(),
    ])
  }
}

test("a search finds what a look at each subscriber finds, while they come, change and go", async () => {
  const { project_id } = await service.project()
  const stranger = await service.project()
  const people = new Map<string, SubscriberRow>()
  let number = 0
  const add = async (count: number) => {
    const rows = Array.from({ length: count }, () =>
      newRow(project_id, { external_id: `user-${number++ * 37}`, fields: fields() }),
    )
    await store.tx((tx) => insertAll(tx, rows))
    for (const row of rows) people.set(row.id, row)
  }
  const others = Array.from({ length: 50 }, (_, at) =>
    newRow(stranger.project_id, { external_id: `user-${at}`, fields: fields() }),
  )
  await store.tx((tx) => insertAll(tx, others))
  expect(await areComplete(store.read)).toBe(store.isAlone)

  await add(sizes.searched)
  await requireSame(project_id, people)
  for (const id of [...people.keys()]) {
    const what = below(4)
    if (what < 2) continue
    await store.tx(async (tx) => {
      const row = await findForUpdate(tx, project_id, id)
      if (what === 2) people.set(id, await change(tx, row, fields()))
      else await removeRows(tx, [row])
    })
    if (what === 3) people.delete(id)
  }
  await add(Math.floor(sizes.searched / 4))
  await requireSame(project_id, people)
})
