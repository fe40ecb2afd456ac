-- Who asked, for traces: the W3C traceparent of the change that made a placement due, where that is traced.
ALTER TABLE "placement" ADD COLUMN "trace" TEXT;
