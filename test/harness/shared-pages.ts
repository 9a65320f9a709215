import { afterAll, beforeAll } from "bun:test"
import type { Belfry } from "./binary"
import { startBrowser, type TestBrowser } from "./browser"
import { openPictures, type Pictures } from "./pictures"

/** What tests of pages work with. It is there while they run. */
export interface SharedPages {
  readonly server: Belfry
  readonly browser: TestBrowser
  readonly pictures: Pictures
}

/** One server, one Chromium and the kept pictures for all tests of a `describe`. */
export function sharedPages(start: () => Promise<Belfry>): SharedPages {
  const made: { -readonly [Name in keyof SharedPages]?: SharedPages[Name] } = {}
  beforeAll(async () => {
    made.server = await start()
    made.browser = await startBrowser()
    made.pictures = openPictures(made.browser)
  })
  afterAll(async () => {
    await made.browser?.[Symbol.asyncDispose]()
    await made.server?.[Symbol.asyncDispose]()
  })
  const found = <Name extends keyof SharedPages>(name: Name): SharedPages[Name] => {
    const one = made[name]
    if (!one) throw new Error(`the ${name} of these tests has not started`)
    return one as SharedPages[Name]
  }
  return {
    get server() {
      return found("server")
    },
    get browser() {
      return found("browser")
    },
    get pictures() {
      return found("pictures")
    },
  }
}
