"""The ONNX messages of IR version 14, as a table: `number name type`, one line a field.

An indented line belongs to the message above it. A type ending in `[]` is repeated, in `[]*` repeated and
packed; `in name` puts the field into that oneof; a `reserved` line lists numbers and names. Messages and
enums have their full names within the package.
"""

from __future__ import annotations

PACKAGE = "onnx"

ENUMS = """
Version _START_VERSION=0 IR_VERSION_2017_10_10=1 IR_VERSION_2017_10_30=2 IR_VERSION_2017_11_3=3 \
IR_VERSION_2019_1_22=4 IR_VERSION_2019_3_18=5 IR_VERSION_2019_9_19=6 IR_VERSION_2020_5_8=7 \
IR_VERSION_2021_7_30=8 IR_VERSION_2023_5_5=9 IR_VERSION_2024_3_25=10 IR_VERSION_2025_05_12=11 \
IR_VERSION_2025_08_26=12 IR_VERSION_2025_11_06=13 IR_VERSION=14
OperatorStatus EXPERIMENTAL=0 STABLE=1
AttributeProto.AttributeType UNDEFINED=0 FLOAT=1 INT=2 STRING=3 TENSOR=4 GRAPH=5 FLOATS=6 INTS=7 STRINGS=8 \
TENSORS=9 GRAPHS=10 SPARSE_TENSOR=11 SPARSE_TENSORS=12 TYPE_PROTO=13 TYPE_PROTOS=14
TensorProto.DataType UNDEFINED=0 FLOAT=1 UINT8=2 INT8=3 UINT16=4 INT16=5 INT32=6 INT64=7 STRING=8 BOOL=9 \
FLOAT16=10 DOUBLE=11 UINT32=12 UINT64=13 COMPLEX64=14 COMPLEX128=15 BFLOAT16=16 FLOAT8E4M3FN=17 \
FLOAT8E4M3FNUZ=18 FLOAT8E5M2=19 FLOAT8E5M2FNUZ=20 UINT4=21 INT4=22 FLOAT4E2M1=23 FLOAT8E8M0=24 UINT2=25 \
INT2=26 FLOAT6E2M3=27 FLOAT6E3M2=28
TensorProto.DataLocation DEFAULT=0 EXTERNAL=1
SequenceProto.DataType UNDEFINED=0 TENSOR=1 SPARSE_TENSOR=2 SEQUENCE=3 MAP=4 OPTIONAL=5
OptionalProto.DataType UNDEFINED=0 TENSOR=1 SPARSE_TENSOR=2 SEQUENCE=3 MAP=4 OPTIONAL=5
"""

MESSAGES = """
ModelProto
  1 ir_version int64
  2 producer_name string
  3 producer_version string
  4 domain string
  5 model_version int64
  6 doc_string string
  7 graph GraphProto
  8 opset_import OperatorSetIdProto[]
  14 metadata_props StringStringEntryProto[]
  20 training_info TrainingInfoProto[]
  25 functions FunctionProto[]
  26 configuration DeviceConfigurationProto[]
GraphProto
  1 node NodeProto[]
  2 name string
  5 initializer TensorProto[]
  10 doc_string string
  11 input ValueInfoProto[]
  12 output ValueInfoProto[]
  13 value_info ValueInfoProto[]
  14 quantization_annotation TensorAnnotation[]
  15 sparse_initializer SparseTensorProto[]
  16 metadata_props StringStringEntryProto[]
  reserved 3 4 6-9 ir_version producer_version producer_tag domain
NodeProto
  1 input string[]
  2 output string[]
  3 name string
  4 op_type string
  5 attribute AttributeProto[]
  6 doc_string string
  7 domain string
  8 overload string
  9 metadata_props StringStringEntryProto[]
  10 device_configurations NodeDeviceConfigurationProto[]
AttributeProto
  1 name string
  2 f float
  3 i int64
  4 s bytes
  5 t TensorProto
  6 g GraphProto
  7 floats float[]
  8 ints int64[]
  9 strings bytes[]
  10 tensors TensorProto[]
  11 graphs GraphProto[]
  13 doc_string string
  14 tp TypeProto
  15 type_protos TypeProto[]
  20 type AttributeProto.AttributeType
  21 ref_attr_name string
  22 sparse_tensor SparseTensorProto
  23 sparse_tensors SparseTensorProto[]
  reserved 12 16-19 v
FunctionProto
  1 name string
  4 input string[]
  5 output string[]
  6 attribute string[]
  7 node NodeProto[]
  8 doc_string string
  9 opset_import OperatorSetIdProto[]
  10 domain string
  11 attribute_proto AttributeProto[]
  12 value_info ValueInfoProto[]
  13 overload string
  14 metadata_props StringStringEntryProto[]
  reserved 2 3 since_version status
ValueInfoProto
  1 name string
  2 type TypeProto
  3 doc_string string
  4 metadata_props StringStringEntryProto[]
TensorProto
  1 dims int64[]
  2 data_type int32
  3 segment TensorProto.Segment
  4 float_data float[]*
  5 int32_data int32[]*
  6 string_data bytes[]
  7 int64_data int64[]*
  8 name string
  9 raw_data bytes
  10 double_data double[]*
  11 uint64_data uint64[]*
  12 doc_string string
  13 external_data StringStringEntryProto[]
  14 data_location TensorProto.DataLocation
  16 metadata_props StringStringEntryProto[]
TensorProto.Segment
  1 begin int64
  2 end int64
SparseTensorProto
  1 values TensorProto
  2 indices TensorProto
  3 dims int64[]
TensorShapeProto
  1 dim TensorShapeProto.Dimension[]
TensorShapeProto.Dimension
  1 dim_value int64 in value
  2 dim_param string in value
  3 denotation string
TypeProto
  1 tensor_type TypeProto.Tensor in value
  4 sequence_type TypeProto.Sequence in value
  5 map_type TypeProto.Map in value
  6 denotation string
  7 opaque_type TypeProto.Opaque in value
  8 sparse_tensor_type TypeProto.SparseTensor in value
  9 optional_type TypeProto.Optional in value
TypeProto.Tensor
  1 elem_type int32
  2 shape TensorShapeProto
TypeProto.Sequence
  1 elem_type TypeProto
TypeProto.Map
  1 key_type int32
  2 value_type TypeProto
TypeProto.Optional
  1 elem_type TypeProto
TypeProto.SparseTensor
  1 elem_type int32
  2 shape TensorShapeProto
TypeProto.Opaque
  1 domain string
  2 name string
  reserved 3 parameters
OperatorSetIdProto
  1 domain string
  2 version int64
StringStringEntryProto
  1 key string
  2 value string
TensorAnnotation
  1 tensor_name string
  2 quant_parameter_tensor_names StringStringEntryProto[]
TrainingInfoProto
  1 initialization GraphProto
  2 algorithm GraphProto
  3 initialization_binding StringStringEntryProto[]
  4 update_binding StringStringEntryProto[]
DeviceConfigurationProto
  1 name string
  2 num_devices int32
  3 device string[]
NodeDeviceConfigurationProto
  1 configuration_id string
  2 sharding_spec ShardingSpecProto[]
  3 pipeline_stage int32
ShardingSpecProto
  1 tensor_name string
  2 device int64[]
  3 index_to_device_group_map IntIntListEntryProto[]
  4 sharded_dim ShardedDimProto[]
IntIntListEntryProto
  1 key int64
  2 value int64[]
ShardedDimProto
  1 axis int64
  2 simple_sharding SimpleShardedDimProto[]
SimpleShardedDimProto
  1 dim_value int64 in dim
  2 dim_param string in dim
  3 num_shards int64
SequenceProto
  1 name string
  2 elem_type int32
  3 tensor_values TensorProto[]
  4 sparse_tensor_values SparseTensorProto[]
  5 sequence_values SequenceProto[]
  6 map_values MapProto[]
  7 optional_values OptionalProto[]
MapProto
  1 name string
  2 key_type int32
  3 keys int64[]
  4 string_keys bytes[]
  5 values SequenceProto
OptionalProto
  1 name string
  2 elem_type int32
  3 tensor_value TensorProto
  4 sparse_tensor_value SparseTensorProto
  5 sequence_value SequenceProto
  6 map_value MapProto
  7 optional_value OptionalProto
OperatorProto
  1 op_type string
  2 since_version int64
  3 status OperatorStatus
  10 doc_string string
OperatorSetProto
  1 magic string
  2 ir_version int64
  3 ir_version_prerelease string
  4 domain string
  5 opset_version int64
  6 doc_string string
  7 ir_build_metadata string
  8 operator OperatorProto[]
  9 functions FunctionProto[]
"""
