import { afterAll } from "bun:test"
import { type ServiceOptions, testService } from "./service"

/** One service for all tests of a file; each test takes a project of its own from it. */
export async function sharedService(options: ServiceOptions = {}) {
  const service = await testService(options)
  afterAll(() => service[Symbol.asyncDispose]())
  return service
}
