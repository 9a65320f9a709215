DROP TABLE "consent_heads" CASCADE;
--> statement-breakpoint
DELETE FROM "instance_values" WHERE "name" = 'consent_heads';