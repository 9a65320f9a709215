ALTER TABLE "domains" ADD COLUMN "provider_dkim" text;--> statement-breakpoint
CREATE INDEX "deliveries_exhausted" ON "deliveries" USING btree ("completed_at") WHERE status = 'exhausted';