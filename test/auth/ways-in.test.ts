import { expect, test } from "bun:test"
import { findForUpdate, type NewEndUser } from "../../src/auth/end-users"
import { ENVIRONMENT_DEFAULTS } from "../../src/auth/environment-settings"
import { addIdentity } from "../../src/auth/social/identities"
import { requireAnotherWayIn, waysIn } from "../../src/auth/ways-in"
import { newApplication, signedUp } from "../harness/application"
import { sharedService } from "../harness/shared-service"
import { plantPasskey } from "./factors/planted-passkey"

const service = await sharedService()
const { store } = service

type Methods = Partial<typeof ENVIRONMENT_DEFAULTS.methods>

/** A user of an environment with these methods, who has these fields. */
async function person(methods: Methods, wanted: NewEndUser) {
  const settings = { methods: { ...ENVIRONMENT_DEFAULTS.methods, ...methods } }
  const shop = await newApplication(service, await service.project(), { settings })
  const environment = await shop.environment()
  const { id } = await signedUp(service, shop, wanted)
  const read = () => findIn(shop.project_id, id)
  const kinds = async () =>
    (await waysIn(store.read, environment, await read())).map(({ kind }) => kind)
  return { environment, id, read, kinds }
}

const findIn = (project_id: string, id: string) =>
  store.tx((tx) => findForUpdate(tx, project_id, id))

const EVERYTHING: NewEndUser = {
  ...{ password_hash: "x", email_verified: true, anonymous_device_id: "device" },
  ...{ phone_number: "+436601234567", phone_verified: true },
}

test("what a user has is a way in where the environment allows it", async () => {
  const all = await person({ phone_otp: true, anonymous: true }, EVERYTHING)
  expect(await all.kinds()).toEqual(["password", "email", "phone", "device"])
  const usual = await person({}, EVERYTHING)
  expect(await usual.kinds()).toEqual(["password", "email"])
  const by_link = await person({ password: false, email_otp: false }, EVERYTHING)
  expect(await by_link.kinds()).toEqual(["email"])
  const none = await person({ email_otp: false, magic_link: false, password: false }, EVERYTHING)
  expect(await none.kinds()).toEqual([])
  expect(await (await person({}, { email_verified: false })).kinds()).toEqual([])
})

test("a passkey and an account elsewhere keep each other from being the last one", async () => {
  const { environment, id, read, kinds } = await person({}, { email_verified: false })
  const { project_id, id: environment_id } = environment
  const passkey = await plantPasskey(service, { project_id, environment_id, user_id: id, name: "" })
  const alone = requireAnotherWayIn(store.read, environment, await read(), { id: passkey })
  expect(await alone.catch(({ code }) => code)).toBe("conflict")
  const account = { provider: "google", provider_user_id: "1", email: null }
  const linked = await store.tx(async (tx) =>
    addIdentity(tx, environment, await findForUpdate(tx, project_id, id), account),
  )
  expect(await kinds()).toEqual(["passkey", "identity"])
  const [identity] = linked?.identities ?? []
  for (const one of [passkey, identity?.id ?? ""])
    await requireAnotherWayIn(store.read, environment, await read(), { id: one })
  const off = { ...environment.settings.methods, oauth: false, passkey: false }
  const closed = { ...environment, settings: { ...environment.settings, methods: off } }
  expect(await waysIn(store.read, closed, await read())).toEqual([])
})
