ALTER TABLE "webhooks" ADD COLUMN "sealed_headers" text;--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "unresolved_at" bigint;--> statement-breakpoint
UPDATE "deliveries" SET "request_headers" = NULL WHERE "request_headers" IS NOT NULL;