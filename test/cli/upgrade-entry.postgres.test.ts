import { expect, test } from "bun:test"
import { enterUpgrade } from "../../cli/local/upgrade-entry"
import {
  dropKeptSchema,
  keepSchema,
  servingNodes,
} from "../../src/operations/upgrade/kept-database"
import { start } from "../../src/server"
import { freshDatabase } from "../harness/postgres"
import { quietLog } from "../harness/quiet"
import { ownServer } from "./own-server"

quietLog()

test("a node accepts nothing while another one upgrades the database, and is counted before", async () => {
  await using database = await freshDatabase()
  const { loaded } = await ownServer(database.url)
  const entry = await enterUpgrade(loaded)
  const counts: number[] = []
  const requireTurn = async () => {
    counts.push(await servingNodes(database.url))
    await entry.requireTurn?.() // no upgrade yet
    await keepSchema(database.url)
    await entry.requireTurn?.()
  }
  const started = start({ loaded, mode: "serve", begin: "if_new", requireTurn: requireTurn })
  const end = await started.catch((error: Error) => error.message)
  expect(end).toContain("Another node upgrades this database")
  expect([...counts, await servingNodes(database.url)]).toEqual([1, 0])
  await dropKeptSchema(database.url)
  const running = await start({ loaded, mode: "serve", begin: "if_new", ...entry })
  await running.stop()
})
