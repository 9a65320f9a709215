import { expect, test } from "bun:test"
import type { OpenConnection } from "../../src/http/connection-limits"
import { connectionLimits, excess } from "../../src/http/connection-limits"

const nothing = { working: new Set<string>(), reading: new Set<string>(), isProxy: () => false }

const from = (address: string, fields: Partial<OpenConnection> = {}): OpenConnection => ({
  descriptor: 0,
  address,
  peer: `${address}${fields.descriptor ?? 0}`,
  idle_ms: 1000,
  is_answered: false,
  ...fields,
})

const wide = { most: 100, per_address: 100, backlog: null }
const descriptors = (all: OpenConnection[]) => all.map(({ descriptor }) => descriptor)

test("connections stay below the descriptors that the rest of the process needs", () => {
  const needs = { reserve: 336, most: null, per_address: null }
  expect(connectionLimits({ ...needs, descriptors: 256 })).toMatchObject({
    most: 96,
    per_address: 24,
  })
  expect(connectionLimits({ ...needs, descriptors: 1024 })).toMatchObject({
    most: 560,
    per_address: 140,
  })
  expect(connectionLimits({ ...needs, descriptors: 1_048_576 })).toEqual({
    most: 10_000,
    per_address: 2500,
    backlog: null,
  })
  expect(connectionLimits({ ...needs, descriptors: Number.POSITIVE_INFINITY }).most).toBe(10_000)
})

test("what the operator sets is never more than the descriptors allow", () => {
  const needs = { descriptors: 1024, reserve: 336 }
  const set = connectionLimits({ ...needs, most: 5000, per_address: 5000 })
  expect(set).toMatchObject({ most: 560, per_address: 560 })
  const small = connectionLimits({ ...needs, most: 40, per_address: 3 })
  expect(small).toMatchObject({ most: 40, per_address: 3 })
})

test("half a request goes first, then an idle connection, and one that is worked for last", () => {
  const working = from("a", { descriptor: 1, idle_ms: 20_000 })
  const fresh = from("b", { descriptor: 2, idle_ms: 3 })
  const idle = from("c", { descriptor: 3, idle_ms: 9000, is_answered: true })
  const half_header = from("d", { descriptor: 4, idle_ms: 2000 })
  const half_body = from("e", { descriptor: 5, idle_ms: 4000, is_answered: true })
  const all = [working, fresh, idle, half_header, half_body]
  const ranking = {
    ...nothing,
    working: new Set([working.peer]),
    reading: new Set([half_body.peer]),
  }
  const leaving = (most: number) => descriptors(excess(all, { ...wide, most }, ranking))
  expect(leaving(5)).toEqual([])
  expect(leaving(0)).toEqual([5, 4, 3, 2, 1])
})

test("an address that has too many loses its own, and a trusted proxy does not", () => {
  const many = [1, 2, 3, 4].map((descriptor) => from("\x7f\0\0\x02", { descriptor }))
  const one = from("\x7f\0\0\x03", { descriptor: 9, idle_ms: 60_000 })
  const limits = { ...wide, per_address: 2 }
  expect(descriptors(excess([one, ...many], limits, nothing))).toEqual([1, 2])
  const isProxy = (address: string) => address === "\x7f\0\0\x02"
  expect(excess([one, ...many], limits, { ...nothing, isProxy })).toEqual([])
})

test("a /64 of IPv6 counts as one address", () => {
  const network = "\x20\x01\x0d\xb8\0\0\0\x07"
  const all = [1, 2, 3].map((descriptor) =>
    from(`${network}${"\0".repeat(7)}${String.fromCharCode(descriptor)}`, { descriptor }),
  )
  const other = from(`\x20\x01\x0d\xb8\0\0\0\x08${"\0".repeat(8)}`, { descriptor: 4 })
  expect(descriptors(excess([...all, other], { ...wide, per_address: 1 }, nothing))).toEqual([1, 2])
})
