import { afterAll, expect, test } from "bun:test"
import { mayBeSignedIn, noteSignedIn } from "../../src/console/kept"
import { beginSession, credential, session, signOut } from "../../src/console/page-session"

const kept = new Map<string, string>()
const before = Object.getOwnPropertyDescriptor(globalThis, "localStorage")
Object.defineProperty(globalThis, "localStorage", {
  configurable: true,
  value: {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  },
})

afterAll(() => {
  session.set({ kind: "unknown" })
  if (before) Object.defineProperty(globalThis, "localStorage", before)
  else Reflect.deleteProperty(globalThis, "localStorage")
})

test("the way out of an API key leaves the mark of a person who is signed in beside it", async () => {
  noteSignedIn(true)
  session.set({ kind: "key", key: "svc_live_one" })
  await signOut()
  expect(session.value).toEqual({ kind: "signed_out" })
  expect(mayBeSignedIn()).toBe(true)
})

test("where no server answers nobody is signed in, and requests without a credential go on", async () => {
  session.set({ kind: "unknown" })
  const sent = credential()
  // A path alone leads nowhere here.
  await expect(beginSession(undefined)).rejects.toThrow("does not answer")
  expect(await sent).toEqual({})
  expect(session.value).toEqual({ kind: "signed_out" })
})
