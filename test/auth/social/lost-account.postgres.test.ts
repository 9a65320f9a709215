import { afterAll, expect, test } from "bun:test"
import { findForUpdate } from "../../../src/auth/end-users"
import { removeIdentity } from "../../../src/auth/social/identities"
import { accountIssuer } from "../../fakes/account-issuer"
import { untilLocked } from "../../harness/lock-waits"
import { sharedService } from "../../harness/shared-service"
import { accountShop } from "./account-shop"

const service = await sharedService()
const issuer = await accountIssuer()
afterAll(() => issuer[Symbol.dispose]())

test("an account that its user loses while a sign-in waits for the user's row lets nobody in there", async () => {
  const { project, signIn, land, exchange } = await accountShop(service, { "oidc-one": issuer })
  const { id, identities } = (await signIn({ sub: "ann" })).body.data.user
  const shown = await land({ sub: "ann" })
  const [held, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const losing = service.store.tx(async (tx) => {
    const user = await findForUpdate(tx, project.project_id, id)
    held.resolve()
    await go.promise // what no closure may do, but how else to meet
    await removeIdentity(tx, user, identities[0].id)
  })
  await held.promise
  const late = exchange("oidc-one", shown)
  await untilLocked(service.store.read, 1, late)
  go.resolve()
  await losing
  const { status, body } = await late
  expect([status, body.data.user.id === id]).toEqual([201, false])
})
