"""What samplers are made of beside their own file: readers, families and bookkeeping; nothing here is a sampler."""
