import { expect, test } from "bun:test"
import { type SearchEntry, searchReference, wordsOf } from "../../src/lib/reference-search"

const entry = (title: string, words = ""): SearchEntry => ({
  title,
  to: `/${title}`,
  kind: "guide",
  words,
})

const ENTRIES = [
  entry("Send an email", "post /v1/emails subject"),
  entry("List emails", "get /v1/emails status"),
  entry("Webhooks: Retries", "email delivery attempts"),
]

const found = (query: string) => searchReference(ENTRIES, query).map(({ title }) => title)

test("an entry is found where it has every word, and a word of its title counts most", () => {
  expect(found("email")).toEqual(["List emails", "Send an email", "Webhooks: Retries"])
  expect(found("SEND Email")).toEqual(["Send an email"])
  expect(found("email attempts")).toEqual(["Webhooks: Retries"])
  expect(found("email nothing")).toEqual([])
  expect(found("  ")).toEqual([])
})

test("small words and the plural do not matter", () => {
  expect(found("how to send emails")).toEqual(["Send an email"])
  expect(found("delivery attempt")).toEqual(["Webhooks: Retries"])
  expect(found("to")).toEqual([])
})

test("a part of a path and a part of a word are found", () => {
  expect(found("v1/emails")).toEqual(["List emails", "Send an email"])
  expect(found("retr")).toEqual(["Webhooks: Retries"])
})

test("there are at most 30 results", () => {
  const many = Array.from({ length: 50 }, (_, at) => entry(`email ${at}`))
  expect(searchReference(many, "email")).toHaveLength(30)
})

test("words keep what belongs to a name", () => {
  expect(wordsOf("POST /v1/emails/{email_id}: to.email, a a")).toEqual([
    ...["post", "v1", "emails", "email_id", "to.email", "a"],
  ])
})
